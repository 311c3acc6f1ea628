// Times as people read them: UTC everywhere, as the command line and the logs have it, so that a link
// means the same in each place. Microseconds since 1970.

/** Of one whose year has not four digits: a clock that was wrong, or a unit that was. */
const absurd = "an absurd time";

function padded(value: number, width: number): string {
  return String(value).padStart(width, "0");
}

/** "2026-11-20 20:46:55 UTC"; "-" for 0. */
export function timeText(timeUs: number): string {
  if (timeUs === 0) return "-";
  return isTellable(timeUs) ? `${isoText(timeUs).slice(0, 19).replace("T", " ")} UTC` : absurd;
}

/** "20:46:55.123": as many decimals as `spanUs` needs to tell neighbours apart. */
export function clockText(timeUs: number, spanUs: number): string {
  if (!isTellable(timeUs)) return absurd;
  const iso = isoText(timeUs);
  const decimals = spanUs < 10_000 ? 6 : spanUs < 600_000_000 ? 3 : 0;
  const clock = decimals > 0 ? iso.slice(11, 20 + decimals) : iso.slice(11, 19);
  return spanUs > 43_200_000_000 ? `${iso.slice(5, 10)} ${clock}` : clock;
}

/** Whether its year has four digits, as all that writes times takes them to have. */
export function isTellable(timeUs: number): boolean {
  const year = new Date(Math.floor(Math.round(timeUs) / 1e6) * 1000).getUTCFullYear();
  return year >= 0 && year <= 9999;
}

/** "2026-11-20T20:46:55.123456Z". */
export function isoText(timeUs: number): string {
  // First to a whole microsecond: what is rounded up within the last one is of the next second.
  const wholeUs = Math.round(timeUs);
  if (!isTellable(wholeUs)) return absurd;
  const seconds = Math.floor(wholeUs / 1e6);
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${padded(wholeUs - seconds * 1e6, 6)}Z`;
}

/** What a person wrote into a field, or null. A time without a zone is UTC. */
export function parseTime(text: string): number | null {
  const found = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?\s*(?:Z|UTC)?$/.exec(text.trim());
  if (!found) return null;
  const [, day, clock = "00:00", seconds = "00", parts = ""] = found;
  const millis = Date.parse(`${day}T${clock}:${seconds}Z`);
  return Number.isNaN(millis) ? null : millis * 1000 + Number(parts.padEnd(6, "0"));
}

/** "3 s ago", "2 min ago". */
export function agoText(timeUs: number, nowUs: number): string {
  const seconds = Math.max(0, (nowUs - timeUs) / 1e6);
  if (seconds < 2) return "now";
  if (seconds < 120) return `${Math.floor(seconds)} s ago`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} days ago`;
}
