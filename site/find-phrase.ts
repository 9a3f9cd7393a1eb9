/** A shorter part is in too many messages. */
const MIN_LENGTH = 10;

/**
 * Returns the longest part of a message that the text has, as a phrase for the search. The text is a message as the app shows it, whose names no
 * page has; in `messages`, … stands for a name.
 */
export function findPhrase(text: string, messages: readonly string[]): string | undefined {
  const line = text.replaceAll(/\s+/g, ' ');
  const parts = messages.flatMap((message) => message.split(/[…"]/)).map((part) => part.replace(/^\W+/, '').trim());
  const [longest] = parts
    .filter((part) => part.length >= MIN_LENGTH && line.includes(part))
    .toSorted((one, other) => other.length - one.length);
  return longest && `"${longest}"`;
}

/** The messages of the page of messages: its list items, without the escapes of Markdown. */
export function readMessages(page: string): string[] {
  return [...page.matchAll(/^- (.+)$/gm)].map(([, text = '']) => text.replaceAll(/\\(\W|_)/g, '$1'));
}
