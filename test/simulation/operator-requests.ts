/** What operators ask the app for, page by page. */

interface Requests {
  readonly send: typeof fetch;
  readonly token: string;
  /** Called after each page. */
  readonly onPage?: () => void;
  /** Called if a page fails: true if it is requested again. */
  readonly again?: (response: Response | undefined) => Promise<boolean>;
}

/** Requests all pages of a path of operators. Returns false if one of them failed. */
export async function requestPages(
  path: string,
  { send, token, onPage = () => undefined, again = async () => false }: Requests,
): Promise<boolean> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  for (let position = '', isFirst = true; isFirst || position; ) {
    const url = `http://localhost/api/operations/${path}${position}`;
    const response = await send(url, { method: 'POST', headers, body: '{}' }).catch(() => undefined);
    if (!response?.ok) {
      if (await again(response)) continue;
      return false;
    }
    onPage();
    const [, next = ''] = /[?&](continuation=[^&>]*)/.exec(response.headers.get('link') ?? '') ?? [];
    [position, isFirst] = [next && `&${next}`, false];
  }
  return true;
}
