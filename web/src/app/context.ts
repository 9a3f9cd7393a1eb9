import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Api } from '../api/api.ts';
import type { Entity, Model } from '../api/model.ts';
import type { User } from '../sign-in/session.ts';
import type { ImportRuns } from '../transfer/import-runs.ts';
import type { Outcomes } from './outcomes.ts';

/** What every page may use. */
export interface App {
  readonly api: Api;
  readonly model: Model;
  readonly user: User;
  readonly imports: ImportRuns;
  readonly outcomes: Outcomes;
  signOut(): void;
  /** Leads to the sign-in, to be somebody else. Absent unless the identity provider is the one for development, which asks for no password. */
  readonly tryAs?: (() => void) | undefined;
}

export const AppContext = createContext<App | undefined>(undefined);

export function useApp(): App {
  const app = useContext(AppContext);
  if (!app) throw new Error('The page is outside of the app.');
  return app;
}

/** The entity of this name, or undefined if the model has none. */
export function useEntity(name: string): Entity | undefined {
  return useApp().model.entities.get(name);
}
