import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';

/**
 * Asks before changes are lost, as long as it is shown: a dialog of the console before another page of it opens, and one of the browser
 * before the tab closes. A browser without the Navigation API, of before 2026, asks only before the tab closes.
 */
export function UnsavedChanges() {
  const [leave, setLeave] = useState<{ readonly go: () => void }>();
  const isLeaving = useRef(false);
  // An effect is cleaned up after the next frame. A page that is left meanwhile, while the form is being saved, would not open.
  useLayoutEffect(() => {
    const navigation = globalThis.navigation as Navigation | undefined;
    const askBeforeUnload = (event: Event) => event.preventDefault();
    const askBeforePage = (event: NavigateEvent) => {
      const { cancelable, destination, navigationType } = event;
      const { url, index, sameDocument } = destination;
      // Another document is asked about by the browser.
      if (!cancelable || !sameDocument || url === location.href) return;
      if (isLeaving.current) {
        isLeaving.current = false;
        return;
      }
      event.preventDefault();
      // Back and Forward move in the history, so that the page that is left is still in it.
      const distance = index - (navigation?.currentEntry?.index ?? index);
      const go = () => (navigationType === 'traverse' ? history.go(distance) : location.assign(url));
      setLeave({ go });
    };
    window.addEventListener('beforeunload', askBeforeUnload);
    navigation?.addEventListener('navigate', askBeforePage);
    return () => {
      window.removeEventListener('beforeunload', askBeforeUnload);
      navigation?.removeEventListener('navigate', askBeforePage);
    };
  }, []);
  if (!leave) return null;
  return (
    <ConfirmDialog
      title="Leave without saving?"
      confirm="Leave"
      isDangerous
      act={() => {
        isLeaving.current = true;
        leave.go();
      }}
      onClose={() => setLeave(undefined)}
    >
      <p>The changes on this page are not saved, and are lost when it is left.</p>
    </ConfirmDialog>
  );
}
