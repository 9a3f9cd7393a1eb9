/** The encodings of an `Accept-Encoding` header, without those of quality 0. */
export function parseEncodings(header: string | null | undefined): string[] {
  const offers = (header ?? '').split(',').map((offer) =>
    offer
      .trim()
      .toLowerCase()
      .split(/\s*;\s*/),
  );
  return offers.filter(([, quality = 'q=1']) => Number(quality.replace(/^q=/, '')) > 0).map(([name = '']) => name);
}
