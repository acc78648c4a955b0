// Records travel as arrays, which are half as long as objects; here they get their names back (widgets/rows.py).

/** A memory version. Times are ISO and UTC; `path`, `size` and `sha` are null where they are not known. */
export function version([id, ordinal, operation, path, actorType, actorId, at, size, sha, redactedBy, redactedAt]) {
  return { id, ordinal, operation, path, actorType, actorId, at, size, sha, redactedBy, redactedAt };
}

/** A live memory; `version` is the id of its head. */
export function memory([path, size, updatedAt, versionId]) {
  return { path, size, updatedAt, version: versionId };
}
