const GLYPHS = { created: "+", modified: "~", deleted: "−" };
const ACTORS = {
  session_actor: "session",
  user_actor: "person",
  api_actor: "API key",
  service_account_actor: "service account",
};

/** `1 line`, `2,000 lines` */
export function counted(count, noun, plural = `${noun}s`) {
  return `${number(count)} ${count === 1 ? noun : plural}`;
}

/** `2,000`, whatever the browser's language: as Python prints it. */
export function number(value) {
  return value.toLocaleString("en-US");
}

/** A size as Python prints it: `312 B`, `1.7 KB`, `100 KB`; 1 KB is 1,024 bytes. */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return "";
  let [amount, unit] = [bytes, "B"];
  for (const larger of ["KB", "MB", "GB"]) {
    if (Math.round(amount * 10) / 10 < 1024) break;
    [amount, unit] = [amount / 1024, larger];
  }
  return `${amount >= 99.95 ? amount.toFixed(0) : amount.toFixed(1).replace(/\.0$/, "")} ${unit}`;
}

/** `2026-11-30 09:21`, in UTC as everywhere in memkernel. */
export function moment(iso) {
  return iso ? `${iso.slice(0, 10)} ${iso.slice(11, 16)}` : "";
}

/** How long ago, for titles: `3 minutes ago`. */
export function ago(iso, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - Date.parse(iso)) / 1000));
  for (const [length, noun] of [[86400, "day"], [3600, "hour"], [60, "minute"]]) {
    if (seconds >= length) return `${counted(Math.floor(seconds / length), noun)} ago`;
  }
  return "just now";
}

/** The sign of what a version did: `+`, `~`, `−`, and `▒` once it is redacted. */
export function glyph({ operation, redactedAt }) {
  return redactedAt ? "▒" : GLYPHS[operation];
}

/** `session sesn_…`, `person user_ann` */
export function actor({ actorType, actorId }) {
  return actorId ? `${ACTORS[actorType] ?? actorType} ${actorId}` : "";
}

/** One version in words: `@3, modified by person user_ann, 2026-11-30 09:21` */
export function versionLine(version) {
  const by = version.actorId ? ` by ${actor(version)}` : "";
  return `@${version.ordinal}, ${version.operation}${by}, ${moment(version.at)}`;
}
