from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("bookshop", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="flashsale",
            name="codes",
            field=models.TextField(
                blank=True,
                default="",
                help_text="For the audio book, one on each line: every copy comes with one. "
                "A few more than copies, so that a returned copy can be sold with another. Empty: without codes.",
            ),
            preserve_default=False,
        ),
    ]
