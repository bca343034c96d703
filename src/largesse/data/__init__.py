"""The only door in.

`read_log` and `read_customers` take a table in any usual form, check every rule once and name everything that is wrong
together; nothing behind the door checks again. `Encoder` turns checked features into a matrix of numbers, learnt on the
log and safe for values never seen. `columns` knows the kinds of columns and puts their values into groups.
"""

from largesse.data.columns import Groups as Groups
from largesse.data.columns import as_floats as as_floats
from largesse.data.columns import group_column as group_column
from largesse.data.columns import kind_of as kind_of
from largesse.data.columns import why_skip as why_skip
from largesse.data.encode import Encoder as Encoder
from largesse.data.log import check_customers as check_customers
from largesse.data.log import feature_table as feature_table
from largesse.data.log import log_from_arrays as log_from_arrays
from largesse.data.log import read_customers as read_customers
from largesse.data.log import read_log as read_log
from largesse.data.read import check_names as check_names
from largesse.data.read import expand_home as expand_home
from largesse.data.read import read_table as read_table
