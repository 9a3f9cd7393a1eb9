import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

/** Puts a text on the clipboard, which the browser allows only with HTTPS and on the local machine. */
export function CopyButton({ text, children }: { readonly text: string; readonly children: ComponentChildren }) {
  const [copied, setCopied] = useState<string>();
  if (!isSecureContext) return null;
  return (
    <p class="actions">
      <button
        type="button"
        class="secondary outline"
        onClick={() => navigator.clipboard.writeText(text).then(() => setCopied(text))}
      >
        {children}
      </button>
      <span role="status" class="muted">
        {copied === text && 'Copied.'}
      </span>
    </p>
  );
}
