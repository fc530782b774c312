import django.db.models.deletion
import django.utils.timezone
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Book",
            fields=[
                ("slug", models.SlugField(primary_key=True, serialize=False)),
                ("title", models.CharField(max_length=100)),
                ("author", models.CharField(max_length=100)),
                ("text", models.TextField()),
                ("price_cents", models.PositiveIntegerField()),
                ("stock", models.PositiveIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="Letter",
            fields=[
                ("webhook_id", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("order_id", models.CharField(max_length=64)),
                ("text", models.TextField()),
            ],
        ),
        migrations.CreateModel(
            name="Note",
            fields=[
                ("name", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("value", models.CharField(max_length=200)),
            ],
        ),
        migrations.CreateModel(
            name="FlashSale",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("sale_id", models.CharField(editable=False, max_length=32, null=True, unique=True)),
                ("units", models.PositiveIntegerField()),
                ("price_cents", models.PositiveIntegerField()),
                ("begins_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("ends_at", models.DateTimeField()),
                ("set_aside", models.PositiveIntegerField(editable=False)),
                ("is_settled", models.BooleanField(default=False, editable=False)),
                ("book", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="bookshop.book")),
            ],
        ),
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("buyer", models.CharField(db_index=True, max_length=128)),
                ("quantity", models.PositiveIntegerField()),
                ("price_cents", models.PositiveIntegerField()),
                ("state", models.CharField(max_length=16)),
                ("held", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
                ("book", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="bookshop.book")),
                (
                    "flash_sale",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to="bookshop.flashsale"),
                ),
            ],
            options={
                "ordering": ("-at",),
            },
        ),
        migrations.CreateModel(
            name="Refund",
            fields=[
                ("id", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("amount_cents", models.PositiveIntegerField()),
                ("order", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="bookshop.order")),
            ],
        ),
    ]
