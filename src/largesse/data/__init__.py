"""The only door in.

`read_log` and `read_customers` take a table in any usual form, check every rule and name everything that is wrong together.
A `Log` is not checked again: the rooms behind the door rely on it, and check only what else they are given (a budget, a
plan, the columns a fitted model needs). `Encoder` turns features into a matrix of numbers, learnt on the log and safe for
values never seen. `group_column` puts the values of a column into a few groups. `split_file` and `read_piece` read files in
pieces, for several machines at once; `open_batches` reads tables batch by batch, in any number of passes.
"""

from largesse.data.batches import Batches as Batches
from largesse.data.batches import has_at_most as has_at_most
from largesse.data.batches import open_batches as open_batches
from largesse.data.columns import as_floats as as_floats
from largesse.data.columns import as_plain as as_plain
from largesse.data.columns import is_text as is_text
from largesse.data.columns import kind_of as kind_of
from largesse.data.columns import why_skip as why_skip
from largesse.data.digest import digest_log as digest_log
from largesse.data.encode import Encoder as Encoder
from largesse.data.encode import plain_columns as plain_columns
from largesse.data.encodings import CYCLES as CYCLES
from largesse.data.encodings import DAY as DAY
from largesse.data.encodings import FARTHEST as FARTHEST
from largesse.data.formats import is_table as is_table
from largesse.data.groups import Grouping as Grouping
from largesse.data.groups import Groups as Groups
from largesse.data.groups import find_grouping as find_grouping
from largesse.data.groups import group_column as group_column
from largesse.data.groups import name_groups as name_groups
from largesse.data.large import limit_problems as limit_problems
from largesse.data.log import check_customers as check_customers
from largesse.data.log import feature_table as feature_table
from largesse.data.log import log_from_arrays as log_from_arrays
from largesse.data.log import read_customers as read_customers
from largesse.data.log import read_log as read_log
from largesse.data.log import require_columns as require_columns
from largesse.data.memory import memory_limit as memory_limit
from largesse.data.notation import parse_problems as parse_problems
from largesse.data.notation import read_notation as read_notation
from largesse.data.pieces import Piece as Piece
from largesse.data.pieces import read_piece as read_piece
from largesse.data.pieces import split_file as split_file
from largesse.data.propensities import Choices as Choices
from largesse.data.propensities import doubt_propensities as doubt_propensities
from largesse.data.read import check_names as check_names
from largesse.data.read import expand_home as expand_home
from largesse.data.read import find_files as find_files
from largesse.data.read import from_memory as from_memory
from largesse.data.read import is_elsewhere as is_elsewhere
from largesse.data.read import merge_schemas as merge_schemas
from largesse.data.read import read_table as read_table
from largesse.data.roles import CODED as CODED
from largesse.data.rows import EncodedRows as EncodedRows
from largesse.data.rows import Row as Row
from largesse.data.rows import RowEncoder as RowEncoder
from largesse.data.rows import check_rows as check_rows
from largesse.data.suggest import Suggestion as Suggestion
from largesse.data.suggest import is_yes_or_no as is_yes_or_no
from largesse.data.suggest import read_suggested as read_suggested
