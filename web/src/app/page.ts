import type { ComponentType } from 'preact';
import type { Entity, Model, Values } from '../api/model.ts';
import type { User } from '../sign-in/session.ts';
import type { Address } from './router.ts';

/** The places where a page can be added; pages.ts lists them. */

export interface PageProps {
  /** The segments that the pattern leaves open. */
  readonly open: Readonly<Record<string, string>>;
  readonly address: Address;
}

/** A page of its own. */
export interface Page {
  /** `operators/queues`; `:name` matches any segment, and `*` at the end all others. */
  readonly pattern: string;
  /** The title of the browser tab. The name of an entity follows on a page about one. */
  readonly title: string;
  readonly component: ComponentType<PageProps>;
  /** The group of the navigation, for a page without open segments. Absent: no link. */
  readonly group?: string;
  readonly isVisible?: (app: { readonly model: Model; readonly user: User }) => boolean;
}

/** A tab beside "Rows" on the page of an entity: `#/entities/employees/transfer`. */
export interface EntityTab {
  readonly id: string;
  readonly title: string;
  readonly component: ComponentType<EntityTabProps>;
  readonly isVisible: (entity: Entity, user: User) => boolean;
}

export interface EntityTabProps {
  readonly entity: Entity;
  readonly address: Address;
}

/** A section of the page of a row. */
export interface RowSection {
  readonly id: string;
  readonly title: string;
  readonly component: ComponentType<RowSectionProps>;
  readonly isVisible: (entity: Entity, user: User) => boolean;
}

export interface RowSectionProps {
  readonly entity: Entity;
  /** The values of the key fields. */
  readonly rowKey: Values;
  readonly values: Values;
  readonly etag: string;
  /** Reads the row again, such as after its file was changed. */
  readonly reload: () => void;
}
