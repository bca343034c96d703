"""HTTP service for decisions about one or many customers, within the budget of a ledger.

`open_service` answers requests until it is stopped. A request passes `access_control`, `endpoints` and `decision_requests`; the
policy comes from `served_policy`, and a ledger books concurrent requests in one transaction (`ledger_batching`). `ledger` keeps the
budget, `pacing` controls its price and rehearses it on streams. `import largesse` imports nothing of this.
"""

from largesse.serve.access_control import AccessPolicy as AccessPolicy
from largesse.serve.access_control import AuthMiddleware as AuthMiddleware
from largesse.serve.json_bodies import RequestError as RequestError
from largesse.serve.json_bodies import describe_error as describe_error
from largesse.serve.json_bodies import make_error_handlers as make_error_handlers
from largesse.serve.json_bodies import make_json_response as make_json_response
from largesse.serve.json_bodies import read_json as read_json
from largesse.serve.json_bodies import write_json as write_json
from largesse.serve.ledger.amounts_and_times import DAY_MICROS as DAY_MICROS
from largesse.serve.ledger.ledger import Ledger as Ledger
from largesse.serve.ledger.ledger import open_ledger as open_ledger
from largesse.serve.ledger.ledger_records import Audit as Audit
from largesse.serve.ledger.ledger_records import ChosenLevels as ChosenLevels
from largesse.serve.ledger.ledger_records import DecisionRequest as DecisionRequest
from largesse.serve.ledger.ledger_records import LedgerDecisions as LedgerDecisions
from largesse.serve.ledger.ledger_records import LedgerStanding as LedgerStanding
from largesse.serve.ledger.ledger_records import LedgerTerms as LedgerTerms
from largesse.serve.ledger.ledger_records import LevelChooser as LevelChooser
from largesse.serve.ledger.ledger_records import Offers as Offers
from largesse.serve.ledger.ledger_records import Reason as Reason
from largesse.serve.ledger.ledger_records import Redemption as Redemption
from largesse.serve.ledger.ledger_records import make_terms as make_terms
from largesse.serve.ledger.sql_statements import DECISION_COLUMNS as DECISION_COLUMNS
from largesse.serve.ledger_audit import audit_ledger as audit_ledger
from largesse.serve.ledger_audit import describe_standing as describe_standing
from largesse.serve.ledger_audit import read_decisions as read_decisions
from largesse.serve.pacing.controller import ControllerGains as ControllerGains
from largesse.serve.pacing.controller import Pacer as Pacer
from largesse.serve.pacing.controller import PacingPlan as PacingPlan
from largesse.serve.pacing.controller import plan_pace as plan_pace
from largesse.serve.pacing.pace_command import pace as pace
from largesse.serve.pacing.pace_command import parse_pace_options as parse_pace_options
from largesse.serve.pacing.population import Population as Population
from largesse.serve.pacing.population import make_offers as make_offers
from largesse.serve.pacing.population import make_population as make_population
from largesse.serve.pacing.stream_simulation import PACING_METHODS as PACING_METHODS
from largesse.serve.pacing.stream_simulation import Stream as Stream
from largesse.serve.pacing.stream_simulation import compare_with_offline_plan as compare_with_offline_plan
from largesse.serve.pacing.stream_simulation import draw_stream as draw_stream
from largesse.serve.pacing.stream_simulation import pace_stream as pace_stream
from largesse.serve.pacing.stream_simulation import plan_offline as plan_offline
from largesse.serve.pacing.stream_simulation import plan_stream as plan_stream
from largesse.serve.server_process import open_listening_socket as open_listening_socket
from largesse.serve.server_process import open_service as open_service
from largesse.serve.server_process import require_packages as require_packages
from largesse.serve.server_process import run_server as run_server
from largesse.serve.service_settings import LedgerSettings as LedgerSettings
from largesse.serve.service_settings import ServiceSettings as ServiceSettings
from largesse.serve.service_settings import parse_ledger_options as parse_ledger_options
