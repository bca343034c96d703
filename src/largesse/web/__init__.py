"""What everything that answers HTTP shares: who may ask, how much they may send, and how errors are said.

`Guard` stands before an application: it checks the host, the token and the origin of every request, limits bodies while they
arrive, answers errors as JSON for people and sets the headers that browsers obey. `listen` finds a port of this machine, and
`serve` answers on it until it is told to stop. Nothing here knows what is served, and nothing needs a framework.
"""

from largesse.web.answers import RequestError as RequestError
from largesse.web.answers import describe_error as describe_error
from largesse.web.answers import read_json as read_json
from largesse.web.answers import status_of as status_of
from largesse.web.answers import tell_mistake as tell_mistake
from largesse.web.answers import to_json as to_json
from largesse.web.guard import Door as Door
from largesse.web.guard import Guard as Guard
from largesse.web.guard import make_token as make_token
from largesse.web.server import check_parts as check_parts
from largesse.web.server import listen as listen
from largesse.web.server import serve as serve
