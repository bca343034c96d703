"""The builder of the documentation: `make docs`, or `PYTHONPATH=docs python -m largesse_site OUT`.

`pages` says which file becomes which page, `rendering` turns Markdown into HTML, `api` writes the reference from docstrings,
`pictures` draws the figures of the method with the report's own charts, `site` puts it all together and checks every link,
`tutorials` runs the code of a page and compares what it prints, and `screenshot` and `studio` take the pictures of the report
and of the studio.
"""
