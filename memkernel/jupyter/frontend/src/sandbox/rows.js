// The rows of a panel get their names back (widgets/sandbox_rows.py).

export function mountOf([store, slug, folder, access, toSave, toBring, putAside, heldBack, held]) {
  return { store, slug, folder, access, toSave, toBring, putAside, heldBack, held };
}

export function entryOf([key, title, code, status, words, exitCode, took, at, notes, leftOut]) {
  return { key, title, code, status, words, exitCode, took, at, notes, leftOut };
}

export function changeOf([entry, outcome, slug, path, version, ordinal, size, added, removed, reason]) {
  return { entry, outcome, slug, path, version, ordinal, size, added, removed, reason };
}

export function conflictOf([id, slug, path, operation, size, at, reason]) {
  return { id, slug, path, operation, size, at, reason };
}
