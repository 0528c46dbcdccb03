# Writes what the test reads; the middle is an example of docs/guides/checking.md.
import json
import pathlib

import numpy as np

values = {"/lm/Neg_output_0": np.float32([-1, 2]), "/lm/Abs_output_0": np.float32([1, 2.5])}

# example
np.savez("values.npz", **values)

folder = pathlib.Path("values")
folder.mkdir()
index = []
for k, (name, value) in enumerate(values.items()):
    np.save(folder / f"{k}.npy", value)
    index.append({"name": name, "file": f"{k}.npy"})
(folder / "index.json").write_text(json.dumps({"values": index}))
# end

# Inputs as NumPy gives them by default.
np.save("float64.npy", np.array([1.0, -2.0]))
np.save("inexact.npy", np.array([0.1, 1e300]))
np.savez("inputs.npz", x=np.array([1.0, -2.0]))
