"""A library that is loaded with RTLD_DEEPBIND, so that its malloc may be another than the program's."""

import chdb
from chdb import session

print(chdb.query("select version() != '', sum(number), uniqExact(number % 1000) from numbers(1000000)", "CSV"))
one = session.Session()
one.query("create database d engine = Atomic")
one.query("create table d.t (a UInt64, s String) engine = MergeTree order by a")
one.query("insert into d.t select number, toString(cityHash64(number)) from numbers(200000)")
print(one.query("select count(), max(s), groupBitXor(a) from d.t", "CSV"))
one.close()
