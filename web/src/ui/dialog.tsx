import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';

interface DialogProps {
  readonly title: string;
  /** What the dialog is about, below its title. A screen reader says both. */
  readonly subject?: string | undefined;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** A modal dialog. The browser keeps the focus inside, and Escape closes it. */
export function Dialog({ title, subject, onClose, children }: DialogProps) {
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    // After the dialog is removed: nothing outside of an open one can have the focus.
    return () => queueMicrotask(() => opener instanceof HTMLElement && opener.focus());
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={onClose}>
      <article>
        <header>
          <h2 id={id}>
            {title}
            {subject && <small> {subject}</small>}
          </h2>
          <button type="button" class="secondary outline" aria-label="Close" onClick={() => dialog.current?.close()}>
            ×
          </button>
        </header>
        {children}
      </article>
    </dialog>
  );
}
