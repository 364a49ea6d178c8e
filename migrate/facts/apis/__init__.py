"""Tables of what is known of the functions and methods of libraries; each name is said of once."""

from .counts import *
from .datasets import *
from .draws import *
from .functions import *
from .keras import *
from .machines import *
from .methods import *
from .metrics import *
from .other_training import *
from .rows import *
from .state import *
from .values import *
