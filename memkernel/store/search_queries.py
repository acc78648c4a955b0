"""The statements of a search for words in contents and paths.

Contents are bytes of UTF-8 that may hold U+0000, which PostgreSQL's text cannot: it is looked over as U+0001. No index
serves this (one of trigrams is an extension, and takes longer to write than the change): it reads what lies below the
path, 100 MB in 0.2 to 0.4 s.
"""

from __future__ import annotations

from typing import Final

from memkernel.store.queries import MEMORY
from memkernel.store.statements import Statement, planned

COLLATION: Final = planned(
    "SELECT coalesce((SELECT collname::text FROM pg_catalog.pg_collation WHERE collname IN ('pg_c_utf8', 'und-x-icu') "
    "AND collencoding IN (-1, pg_char_to_encoding('UTF8')) ORDER BY collname = 'pg_c_utf8' DESC LIMIT 1), 'default')"
)
"""By which letters of all scripts get small; the database's own may know those of ASCII alone."""

ASCII: Final = "C"
"""Twice as fast, for words of ASCII."""

_TEXT: Final = (
    r"CASE WHEN position(E'\\x00'::bytea IN v.content) = 0 THEN convert_from(v.content, 'UTF8') "
    r"ELSE convert_from(decode(replace(replace("
    r"encode(v.content, 'escape'), E'\\\\', E'\\134'), E'\\000', E'\\001'), 'escape'), 'UTF8') END"
)

# Each text is made small once (OFFSET 0), words are looked for bytewise ("C"), and only what is best is read again.
_SEARCH: Final = """
WITH word AS MATERIALIZED (SELECT lower(w COLLATE "{collation}") COLLATE "C" AS w FROM unnest($3::text[]) w),
hit AS (
    SELECT small.id, small.path,
        (SELECT count(*) FROM word WHERE strpos(small.small_path, w) > 0) AS named,
        (SELECT sum((octet_length(small.content) - octet_length(replace(small.content, w, ''))) / octet_length(w))
            FROM word)::bigint AS hits
    FROM (
        SELECT m.id, m.path, lower(m.path COLLATE "{collation}") COLLATE "C" AS small_path,
            lower(({text}) COLLATE "{collation}") COLLATE "C" AS content
        FROM memkernel.memories m JOIN memkernel.memory_versions v
            ON v.memory_store_id = m.memory_store_id AND v.id = m.memory_version_id
        WHERE m.memory_store_id = $1::text AND m.path >= $2::text AND m.path < $2 || '0'
            AND (m.path = $2 OR m.path > $2 || '/')
        OFFSET 0) small
    WHERE NOT EXISTS (SELECT FROM word WHERE strpos(small.content, w) = 0 AND strpos(small.small_path, w) = 0)
),
best AS (SELECT *, count(*) OVER () AS total FROM hit ORDER BY named DESC, hits DESC, path LIMIT $4::bigint)
SELECT {memory}, v.content, best.hits, best.total
FROM best JOIN memkernel.memories m ON m.memory_store_id = $1 AND m.id = best.id
    JOIN memkernel.memory_versions v ON v.memory_store_id = m.memory_store_id AND v.id = m.memory_version_id
ORDER BY best.named DESC, best.hits DESC, best.path
"""


def search(collation: str) -> Statement:
    """Memories at or below $2 that hold all words of $3, best first; contents, counts, and how many there are.

    Args:
        collation: of COLLATION's answers, or ASCII.
    """
    sql = _SEARCH.format(collation=collation, text=_TEXT, memory=MEMORY)
    return Statement(b"", sql.encode())
