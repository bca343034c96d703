"""Reading, checking and encoding of all input tables.

`read_log` and `read_customers` take a table in any usual form, check every rule and report all problems together. A `Log` is not
checked again. `Encoder` turns features into a matrix of numbers. `group_column_values` bins a column. `open_batches` reads tables batch
by batch, in any number of passes; `split_into_pieces` and `read_piece` read files in pieces, for several machines.
"""

from largesse.data.arrow_columns import convert_to_floats as convert_to_floats
from largesse.data.arrow_columns import convert_to_seconds as convert_to_seconds
from largesse.data.arrow_columns import count_words as count_words
from largesse.data.arrow_columns import decode_dictionary as decode_dictionary
from largesse.data.arrow_columns import find_feature_kind as find_feature_kind
from largesse.data.arrow_columns import find_skip_reason as find_skip_reason
from largesse.data.arrow_columns import index_words as index_words
from largesse.data.arrow_columns import is_text_type as is_text_type
from largesse.data.arrow_columns import list_example_values as list_example_values
from largesse.data.assignment_unit_detection import find_assignment_unit as find_assignment_unit
from largesse.data.assignment_unit_detection import index_distinct_values as index_distinct_values
from largesse.data.column_binning import GroupingRule as GroupingRule
from largesse.data.column_binning import ValueGroups as ValueGroups
from largesse.data.column_binning import drop_empty_groups as drop_empty_groups
from largesse.data.column_binning import find_grouping_rule as find_grouping_rule
from largesse.data.column_binning import format_group_limit as format_group_limit
from largesse.data.column_binning import group_column_values as group_column_values
from largesse.data.column_encoders import CYCLES as CYCLES
from largesse.data.column_encoders import MAX_STANDARD_DEVIATIONS as MAX_STANDARD_DEVIATIONS
from largesse.data.column_encoders import SECONDS_PER_DAY as SECONDS_PER_DAY
from largesse.data.column_roles import PLAIN_TEXT_ROLES as PLAIN_TEXT_ROLES
from largesse.data.csv_reader import find_encoding_problems as find_encoding_problems
from largesse.data.encoder import Encoder as Encoder
from largesse.data.encoder import make_raw_arrays as make_raw_arrays
from largesse.data.json_row_encoder import EncodedRows as EncodedRows
from largesse.data.json_row_encoder import JsonRowEncoder as JsonRowEncoder
from largesse.data.json_row_encoder import Row as Row
from largesse.data.json_row_encoder import parse_json_rows as parse_json_rows
from largesse.data.level_name_order import LevelOrder as LevelOrder
from largesse.data.level_name_order import means_no_incentive as means_no_incentive
from largesse.data.level_name_order import order_levels as order_levels
from largesse.data.level_name_order import split_words as split_words
from largesse.data.log_reader import digest_log as digest_log
from largesse.data.log_reader import log_from_arrays as log_from_arrays
from largesse.data.log_reader import make_checked_customers as make_checked_customers
from largesse.data.log_reader import make_feature_table as make_feature_table
from largesse.data.log_reader import read_customers as read_customers
from largesse.data.log_reader import read_log as read_log
from largesse.data.log_reader import require_customer_columns as require_customer_columns
from largesse.data.optional_format_readers import QueriedFile as QueriedFile
from largesse.data.propensity_checks import GivenPropensities as GivenPropensities
from largesse.data.propensity_checks import find_implausible_levels as find_implausible_levels
from largesse.data.table_batches import FilePiece as FilePiece
from largesse.data.table_batches import TableBatches as TableBatches
from largesse.data.table_batches import bound_value_and_row_counts as bound_value_and_row_counts
from largesse.data.table_batches import open_batches as open_batches
from largesse.data.table_batches import read_piece as read_piece
from largesse.data.table_batches import split_into_pieces as split_into_pieces
from largesse.data.table_reader import check_column_names as check_column_names
from largesse.data.table_reader import convert_to_arrow_table as convert_to_arrow_table
from largesse.data.table_reader import expand_home as expand_home
from largesse.data.table_reader import find_files as find_files
from largesse.data.table_reader import format_size as format_size
from largesse.data.table_reader import is_remote as is_remote
from largesse.data.table_reader import is_table_file as is_table_file
from largesse.data.table_reader import list_reading_notes as list_reading_notes
from largesse.data.table_reader import merge_schemas as merge_schemas
from largesse.data.table_reader import read_memory_limit as read_memory_limit
from largesse.data.table_reader import read_table as read_table
from largesse.data.text_parsing import NotationSuggestion as NotationSuggestion
from largesse.data.text_parsing import find_parse_setting_problems as find_parse_setting_problems
from largesse.data.text_parsing import parse_expected_kinds as parse_expected_kinds
from largesse.data.text_parsing import parse_numbers as parse_numbers
from largesse.data.text_parsing import parse_text_columns as parse_text_columns
from largesse.data.text_parsing import parse_unambiguous_columns as parse_unambiguous_columns
