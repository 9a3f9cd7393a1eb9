import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';

/** An editor saves a file in several writes, and one change may touch several files. */
const SETTLED_AFTER_MS = 150;

export interface FileWatcher {
  /** Replaces the files whose changes are reported. */
  watch(files: readonly string[]): void;
  close(): void;
}

/** Reports changes of files, several in quick succession as one. Watches their folders: an editor may replace a file by another one. */
export function watchFiles(onChange: () => void): FileWatcher {
  let watchers: readonly FSWatcher[] = [];
  let timer: NodeJS.Timeout | undefined;
  const closeWatchers = () => {
    for (const watcher of watchers) watcher.close();
  };
  return {
    watch(files) {
      closeWatchers();
      watchers = [...Map.groupBy(files, dirname)].map(([folder, inFolder]) => {
        const names = new Set(inFolder.map((file) => basename(file)));
        return watch(folder, (_, name) => {
          if (name !== null && !names.has(name)) return;
          clearTimeout(timer);
          timer = setTimeout(onChange, SETTLED_AFTER_MS);
        });
      });
    },
    close() {
      clearTimeout(timer);
      closeWatchers();
    },
  };
}
