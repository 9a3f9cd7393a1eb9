const TIME_SPAN = /^(?:(\d+)\.)?([01]?\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{1,7}))?$/;

/** Milliseconds of a .NET TimeSpan such as `00:00:05` or `1.12:00:00`; undefined for any other text. */
export function parseTimeSpan(text: string): number | undefined {
  const match = TIME_SPAN.exec(text);
  if (!match) return undefined;
  const [, days = '0', hours, minutes, seconds, fraction = '0'] = match;
  return (
    (((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000 +
    Math.round(Number(`0.${fraction}`) * 1000)
  );
}
