import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { useOutcome } from '../app/use-outcome.ts';
import { Dialog } from './dialog.tsx';
import { ErrorNotice } from './notice.tsx';

interface ConfirmDialogProps {
  readonly title: string;
  /** What the action changes. */
  readonly subject?: string | undefined;
  /** The text of the button. */
  readonly confirm: string;
  /** True if what is lost may not come back. */
  readonly isDangerous?: boolean;
  /** False until what to do is known. */
  readonly isReady?: boolean;
  /** The dialog shows its error, and closes otherwise. An outcome that arrives after the page was left is announced. */
  readonly act: () => unknown;
  /** Called after the action if the page is still open, so that it shows what was done. Default: `onClose`. */
  readonly onDone?: () => void;
  readonly onClose: () => void;
  /** What would happen, and what it costs. */
  readonly children?: ComponentChildren;
}

/** Says what an action would do, and asks before it is done. */
export function ConfirmDialog(props: ConfirmDialogProps) {
  const {
    title,
    subject,
    confirm,
    isDangerous = false,
    isReady = true,
    act,
    onClose,
    onDone = onClose,
    children,
  } = props;
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [isHidden, setHidden] = useState(false);
  const begin = useOutcome();
  const go = async () => {
    const end = begin(title);
    setBusy(true);
    setError(undefined);
    try {
      await act();
      if (!end()) onDone();
    } catch (failed) {
      if (end(failed)) return;
      setError(failed);
      setHidden(false);
    } finally {
      setBusy(false);
    }
  };
  // The action cannot be taken back. If it fails after the dialog was closed, the dialog opens again with the error.
  const close = isBusy ? () => setHidden(true) : onClose;
  if (isHidden) return null;
  return (
    <Dialog title={title} subject={subject} onClose={close}>
      {children}
      <footer class="actions">
        <ErrorNotice error={error} title={`${confirm} failed`} />
        <button
          type="button"
          class={isDangerous ? 'danger' : ''}
          disabled={!isReady || isBusy}
          aria-busy={isBusy}
          onClick={go}
        >
          {confirm}
        </button>
        <button type="button" class="secondary outline" onClick={close}>
          Cancel
        </button>
      </footer>
    </Dialog>
  );
}
