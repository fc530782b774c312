from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path
from django.views.i18n import set_language

from bookshop import letters, views

urlpatterns = [
    path("", views.all_books, name="books"),
    path("books/<slug:slug>/", views.book_page, name="book"),
    path("books/<slug:slug>/claim", views.claim, name="claim"),
    path("books/<slug:slug>/buy", views.buy, name="buy"),
    path("orders/", views.my_orders, name="orders"),
    path("orders/<str:order_id>/", views.order_page, name="order"),
    path("orders/<str:order_id>/pay", views.pay, name="pay"),
    path("orders/<str:order_id>/cancel", views.cancel, name="cancel"),
    path("language/", set_language, name="set_language"),
    path("sign-in/", LoginView.as_view(), name="sign-in"),
    path("sign-out/", LogoutView.as_view(), name="sign-out"),
    path(letters.PATH, letters.receive),
    path("admin/", admin.site.urls),
]
