"""What the numbers of MySQL's and MariaDB's errors mean to us."""

from seckill.backends.sql.database import ErrorMeaning

DUPLICATE = 1062

# Numbers of errors: https://mariadb.com/kb/en/mariadb-error-code-reference/ and MySQL's own, which has the same ones.
UNAVAILABLE = {
    1020,  # another transaction has changed the row since (MariaDB, by setting)
    1021,  # disk full
    1030,  # an error of the storage, often: disk full
    1037,  # out of memory
    1040,  # too many connections
    1041,  # out of memory
    1047,  # a node that has lost its cluster
    1053,  # shutting down
    1077,  # shut down
    1114,  # table full, because the disk is
    1129,  # host blocked after too many failures
    1152,  # connection aborted
    1158,
    1159,
    1160,
    1161,  # reading and writing packets
    1180,  # error during COMMIT
    1203,  # too many connections of this user
    1205,  # lock not available in time
    1206,  # too many locks
    1226,  # too many of something by this user
    1290,  # read only: a replica, or a primary that became one
    1317,  # interrupted
    1792,  # read only transaction
    1836,  # read only mode
    1927,  # killed
    1969,  # statement timeout (MariaDB)
    2002,
    2003,  # cannot connect
    2006,
    2013,
    2014,
    2055,  # connection lost
    3024,  # statement timeout (MySQL)
    3572,  # lock not available at once
    4031,  # idle for too long
}
COLLIDED = {1213}
REFUSED = {
    1048,  # NULL where there must be a value
    1062,  # duplicate
    1264,  # number out of range
    1265,
    1292,
    1366,  # value does not fit the type
    1300,  # no text
    1364,  # a value is missing
    1406,  # too long
    1451,
    1452,  # refers to nothing
    1690,  # number out of range in an expression
    1761,  # duplicate by way of a reference
    3140,
    3141,
    3156,
    3665,
    3666,
    3669,  # MySQL: JSON that does not fit
    3819,  # check, as MySQL says it
    4025,  # check, as MariaDB says it
    4037,
    4038,  # MariaDB: JSON that does not fit
    4174,  # MariaDB: a value of JSON_TABLE does not fit its column
}
UNSUITABLE = {
    1044,  # no rights in the database
    1045,  # login
    1049,  # no such database
    1130,  # host not allowed
    1142,
    1143,
    1227,
    1370,  # no rights
    1251,
    2059,  # a way of login that we do not know
    1665,  # binlog_format=STATEMENT does not go with READ COMMITTED
    1698,  # login
}


def meaning(number: int) -> ErrorMeaning | None:
    """Returns None for an unexpected error, which must not be hidden."""
    if number in UNAVAILABLE:
        return ErrorMeaning.UNAVAILABLE
    if number in COLLIDED:
        return ErrorMeaning.COLLIDED
    if number in REFUSED:
        return ErrorMeaning.REFUSED
    return ErrorMeaning.UNSUITABLE if number in UNSUITABLE else None
