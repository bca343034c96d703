"""Reading, checking and encoding of all input tables.

`read_log` and `read_customers` take a table in any usual form, check every rule and report all problems together. A `Log` is not
checked again. `Encoder` turns features into a matrix of numbers. `group_column` bins a column. `open_batches` reads tables batch
by batch, in any number of passes; `split_file` and `read_piece` read files in pieces, for several machines.
"""

from largesse.data.arrow_columns import as_floats as as_floats
from largesse.data.arrow_columns import as_seconds as as_seconds
from largesse.data.arrow_columns import count_words as count_words
from largesse.data.arrow_columns import decode_dictionary as decode_dictionary
from largesse.data.arrow_columns import is_text as is_text
from largesse.data.arrow_columns import kind_of as kind_of
from largesse.data.arrow_columns import list_examples as list_examples
from largesse.data.arrow_columns import skip_reason as skip_reason
from largesse.data.arrow_columns import word_codes as word_codes
from largesse.data.assignment_unit import find_assignment_unit as find_assignment_unit
from largesse.data.assignment_unit import group_rows as group_rows
from largesse.data.binning import Grouping as Grouping
from largesse.data.binning import Groups as Groups
from largesse.data.binning import find_grouping as find_grouping
from largesse.data.binning import group_column as group_column
from largesse.data.binning import name_groups as name_groups
from largesse.data.binning import name_value as name_value
from largesse.data.column_encoders import CYCLES as CYCLES
from largesse.data.column_encoders import MAX_STANDARD_DEVIATIONS as MAX_STANDARD_DEVIATIONS
from largesse.data.column_encoders import SECONDS_PER_DAY as SECONDS_PER_DAY
from largesse.data.column_roles import PLAIN_TEXT_ROLES as PLAIN_TEXT_ROLES
from largesse.data.encoder import Encoder as Encoder
from largesse.data.encoder import plain_columns as plain_columns
from largesse.data.file_formats import QueriedFile as QueriedFile
from largesse.data.json_row_encoder import EncodedRows as EncodedRows
from largesse.data.json_row_encoder import Row as Row
from largesse.data.json_row_encoder import RowEncoder as RowEncoder
from largesse.data.json_row_encoder import parse_json_rows as parse_json_rows
from largesse.data.level_name_order import LevelOrder as LevelOrder
from largesse.data.level_name_order import is_nothing as is_nothing
from largesse.data.level_name_order import order_levels as order_levels
from largesse.data.level_name_order import split_words as split_words
from largesse.data.log_reader import check_customers as check_customers
from largesse.data.log_reader import digest_log as digest_log
from largesse.data.log_reader import feature_table as feature_table
from largesse.data.log_reader import log_from_arrays as log_from_arrays
from largesse.data.log_reader import read_customers as read_customers
from largesse.data.log_reader import read_log as read_log
from largesse.data.log_reader import require_columns as require_columns
from largesse.data.propensity_checks import GivenPropensities as GivenPropensities
from largesse.data.propensity_checks import find_doubtful_levels as find_doubtful_levels
from largesse.data.table_batches import Batches as Batches
from largesse.data.table_batches import FilePiece as FilePiece
from largesse.data.table_batches import bound_size as bound_size
from largesse.data.table_batches import open_batches as open_batches
from largesse.data.table_batches import read_piece as read_piece
from largesse.data.table_batches import split_file as split_file
from largesse.data.table_reader import check_columns as check_columns
from largesse.data.table_reader import expand_home as expand_home
from largesse.data.table_reader import find_files as find_files
from largesse.data.table_reader import format_size as format_size
from largesse.data.table_reader import is_remote as is_remote
from largesse.data.table_reader import is_table as is_table
from largesse.data.table_reader import list_reading_notes as list_reading_notes
from largesse.data.table_reader import memory_limit as memory_limit
from largesse.data.table_reader import merge_schemas as merge_schemas
from largesse.data.table_reader import read_table as read_table
from largesse.data.table_reader import table_from_memory as table_from_memory
from largesse.data.text_parsing import Suggestion as Suggestion
from largesse.data.text_parsing import match_kinds as match_kinds
from largesse.data.text_parsing import parse_numbers as parse_numbers
from largesse.data.text_parsing import parse_problems as parse_problems
from largesse.data.text_parsing import parse_text_columns as parse_text_columns
from largesse.data.text_parsing import read_suggested as read_suggested
