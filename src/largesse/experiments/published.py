"""What the paper printed in its Table 2: mean and standard deviation over its hundred repeats, to stand beside ours."""

from __future__ import annotations

TABLE2: dict[str, dict[str, tuple[float, float]]] = {
    "CCPOvSIRE": {"rmse": (0.2408, 0.0183), "value 1": (0.0934, 0.0225), "value 2": (0.1408, 0.0154)},
    "CCPOvSIRE†": {"rmse": (0.2740, 0.0255), "value 1": (0.0718, 0.0063), "value 2": (0.1186, 0.0198)},
    "CCPOvIRE": {"rmse": (0.2712, 0.0341), "value 1": (0.0839, 0.0137), "value 2": (0.1304, 0.0112)},
    "CCPOvIRE†": {"rmse": (0.2943, 0.0345), "value 1": (0.0674, 0.0112), "value 2": (0.1157, 0.0127)},
    "GANITE": {"rmse": (0.3449, 0.0236), "value 1": (0.0679, 0.0217), "value 2": (0.0968, 0.0367)},
    "BART": {"rmse": (0.2867, 0.0302), "value 1": (0.0492, 0.0217), "value 2": (0.0927, 0.0362)},
    "CFRNet": {"rmse": (0.2480, 0.0168), "value 1": (0.0861, 0.0220), "value 2": (0.1335, 0.0197)},
    "BanditNet": {"value 1": (0.0654, 0.0265), "value 2": (0.0997, 0.0367)},
}
