"""On PostgreSQL, triggers look after the rounds of orders, once for each statement. The foreign key that did it looked
the round up for every order, which took a quarter of what the server spent on an order.

Revision ID: 0025
"""

from alembic import op

revision = "0025"
down_revision = "0024"

# As a foreign key does, the first two lock the rounds, so that whoever deletes one waits for the commit and then finds
# the orders. `23503` is what a foreign key says.
FUNCTIONS = {
    "rounds_of_new_orders": """
        DECLARE
            named bigint[] := ARRAY(SELECT DISTINCT round_id FROM new_orders ORDER BY round_id);
            present bigint;
        BEGIN
            PERFORM FROM rounds WHERE id = ANY (named) ORDER BY id FOR KEY SHARE;
            GET DIAGNOSTICS present = ROW_COUNT;
            IF present < cardinality(named) THEN
                RAISE EXCEPTION 'an order is of no round' USING ERRCODE = '23503';
            END IF;
            RETURN NULL;
        END
    """,
    "round_of_changed_order": """
        BEGIN
            PERFORM FROM rounds WHERE id = NEW.round_id FOR KEY SHARE;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'an order is of no round' USING ERRCODE = '23503';
            END IF;
            RETURN NULL;
        END
    """,
    # A transaction that only sees what was there when it began would not find orders that came in the meantime.
    "orders_of_gone_round": """
        BEGIN
            IF current_setting('transaction_isolation') <> 'read committed' THEN
                RAISE EXCEPTION 'rounds only go at the level "read committed"' USING ERRCODE = '23503';
            END IF;
            IF EXISTS (SELECT FROM orders WHERE round_id = OLD.id) THEN
                RAISE EXCEPTION 'a round has orders' USING ERRCODE = '23503';
            END IF;
            RETURN NULL;
        END
    """,
    "orders_of_no_rounds": """
        BEGIN
            IF EXISTS (SELECT FROM orders) THEN
                RAISE EXCEPTION 'rounds have orders' USING ERRCODE = '23503';
            END IF;
            RETURN NULL;
        END
    """,
}
TRIGGERS = {
    "rounds_of_new_orders": "AFTER INSERT ON orders REFERENCING NEW TABLE AS new_orders FOR EACH STATEMENT",
    "round_of_changed_order": "AFTER UPDATE OF round_id ON orders FOR EACH ROW",
    "orders_of_gone_round": "AFTER DELETE OR UPDATE OF id ON rounds FOR EACH ROW",
    "orders_of_no_rounds": "AFTER TRUNCATE ON rounds FOR EACH STATEMENT",
}


def upgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        return
    # Comes first, because it takes the strongest locks: with another order, they would have to be raised.
    op.execute("ALTER TABLE orders DROP CONSTRAINT fk_orders_round_id")
    for name, body in FUNCTIONS.items():
        op.execute(
            f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT "
            f"AS $${body}$$"
        )
        op.execute(f"CREATE TRIGGER {name} {TRIGGERS[name]} EXECUTE FUNCTION {name}()")
