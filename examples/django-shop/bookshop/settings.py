import os
from pathlib import Path

# Of the shop and of seckill; `examples/run.py` sets all of them.
SHOP_URL = os.environ["SHOP_URL"]
SECKILL_URL = os.environ["SHOP_SECKILL_URL"]
SECKILL_ADMIN_KEY = os.environ["SHOP_ADMIN_KEY"]  # what the shop may do in seckill
SECKILL_JWT_SECRET = os.environ["SHOP_JWT_SECRET"]  # signs who a buyer is
CURRENCY = "EUR"

SECRET_KEY = os.environ["SHOP_SESSION_SECRET"]
DEBUG = True  # `runserver`, on this machine only
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
ROOT_URLCONF = "bookshop.urls"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "bookshop",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",  # the visitor's choice, or else the browser's language
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "bookshop.refusals.Refusals",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [Path(__file__).parent / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ["SHOP_DATABASE"],
        # Who begins to write has the database to itself: what it reads then is still so when it writes.
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
    }
}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = LOGOUT_REDIRECT_URL = "/"
STATIC_URL = "/static/"
LANGUAGES = [("en", "English"), ("zh-hans", "中文")]  # what we say ourselves: `words.py`
TIME_ZONE = "UTC"
USE_TZ = True
