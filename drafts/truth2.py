import sys; sys.path.insert(0,"/tmp/s")
from edit import edit
edit("book/03_scale.ipynb", [("is about six times\nsmaller on average", "is six to seven times\nsmaller on average")])
