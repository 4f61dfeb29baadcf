"""The three hops as operations of Django's migrations, the data with RunPython over models, as its documentation shows
it."""
from common import RENAMES, copied, done
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": copied()}}, INSTALLED_APPS=[], USE_TZ=False,
    DEFAULT_AUTO_FIELD="django.db.models.AutoField")
django.setup()
from django.db import connection, migrations, models  # noqa: E402
from django.db.migrations.migration import Migration  # noqa: E402
from django.db.migrations.state import ProjectState  # noqa: E402


def integer(column, **more):
    return models.IntegerField(null=True, db_column=column, **more)


def words(column):
    return models.TextField(null=True, db_column=column)


def number(column, **more):
    return models.FloatField(null=True, db_column=column, **more)


def model(entity, **fields):
    """A model over a table of the store; every one has the three columns of Core Data."""
    core = {"id": models.AutoField(primary_key=True, db_column="Z_PK"), "ent": integer("Z_ENT"),
            "opt": integer("Z_OPT")}
    return migrations.CreateModel(entity, list((core | fields).items()), options={"db_table": "Z" + entity.upper()})


state = ProjectState()
for operation in (
        model("Person", age=integer("ZAGE"), birth=number("ZBIRTHDATE"), score=number("ZSCORE"), city=words("ZCITY"),
              email=words("ZEMAIL"), first=words("ZFIRSTNAME"), last=words("ZLASTNAME"), legacy=words("ZLEGACYCODE"),
              street=words("ZSTREET"), zip=words("ZZIP"), photo=models.BinaryField(null=True, db_column="ZPHOTO")),
        model("Order", quantity=integer("ZQUANTITY"), status=integer("ZSTATUS"),
              person=integer("ZPERSON", db_index=True),
              date=number("ZORDERDATE", db_index=True), price=number("ZPRICE"), customername=words("ZCUSTOMERNAME"),
              note=words("ZNOTE"), number=words("ZNUMBER")),
        model("Tag", name=words("ZNAME"))):
    operation.state_forwards("workload", state)


def split(apps, editor):
    Person, Address, Order = (apps.get_model("workload", name) for name in ("Person", "Address", "Order"))
    last = 0
    while rows := list(Person.objects.filter(id__gt=last).order_by("id").defer("photo")[:5000]):
        last = rows[-1].id
        Address.objects.bulk_create(
            [Address(id=row.id, ent=1, opt=1, person=row.id, city=row.city, street=row.street, zip=row.zip.upper())
             for row in rows], batch_size=500)
        for row in rows:
            row.address, row.opt = row.id, 1
            row.fullname, row.score = row.first + " " + row.last.upper(), row.score * 1.5 + row.age
        Person.objects.bulk_update(rows, ["address", "opt", "fullname", "score"], batch_size=200)
    Order.objects.filter(status=19).delete()
    Order.objects.update(total=models.F("quantity") * models.F("price"), opt=1)


def normalise(apps, editor):
    Order, Customer = apps.get_model("workload", "Order"), apps.get_model("workload", "Customer")
    names = Order.objects.order_by("customername").values_list("customername", flat=True).distinct()
    Customer.objects.bulk_create([Customer(ent=2, opt=1, name=name) for name in names], batch_size=500)
    mine = Customer.objects.filter(name=models.OuterRef("customername")).values("id")[:1]
    Order.objects.update(ent=3, customer=models.Subquery(mine))
    apps.get_model("workload", "Person").objects.update(ent=4)
    apps.get_model("workload", "Tag").objects.update(ent=5)


HOPS = [
    [migrations.AddField("Person", "active", integer("ZACTIVE", default=1)),
     migrations.AlterField("Person", "email", words("ZEMAILADDRESS")), migrations.RemoveField("Person", "legacy")],
    [model("Address", person=integer("ZPERSON", db_index=True), city=words("ZCITY"), street=words("ZSTREET"),
           zip=words("ZZIP")),
     migrations.AddField("Person", "address", integer("ZADDRESS")),
     migrations.AddField("Person", "fullname", words("ZFULLNAME")),
     migrations.AddField("Order", "total", number("ZTOTAL")), migrations.RunPython(split),
     *[migrations.RemoveField("Person", name) for name in ("first", "last", "city", "street", "zip")]],
    [model("Customer", name=models.TextField(unique=True, db_column="ZNAME")),
     migrations.AddField("Order", "customer", integer("ZCUSTOMER", db_index=True)), migrations.RunPython(normalise),
     migrations.RemoveField("Order", "customername"), migrations.RemoveField("Person", "address"),
     *[migrations.RunSQL(sql) for sql in RENAMES]],
]
with connection.cursor() as cursor:
    cursor.execute("PRAGMA synchronous = OFF")
for index, operations in enumerate(HOPS):
    migration = Migration(f"hop{index + 1}", "workload")
    migration.operations = operations
    with connection.schema_editor(atomic=True) as editor:
        state = migration.apply(state, editor)
connection.close()
done()
