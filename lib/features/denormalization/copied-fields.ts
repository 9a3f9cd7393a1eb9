import { omit, type Values } from '../../base/values.ts';
import { apartFields } from '../../define/codec/further-rows.ts';
import { type Denormalized, keptFields, referenceFields } from '../../define/declaration/entity.ts';
import { fieldsHiddenFrom, rolesToSee } from '../../define/places/readers.ts';
import { unreadableErrors } from '../../define/validate/oracle-errors.ts';

/** The copies of a source's fields; none if there is no source. */
export function copiesOf(link: Denormalized, source: Values | undefined): Values {
  if (!source) return {};
  const copies = Object.entries(link.copies).map(
    ([field, copy]) => [field, copy(omit(source, hiddenFields(link, field)))] as const,
  );
  return Object.fromEntries(copies.filter(([, value]) => value !== undefined && value !== null));
}

/**
 * The fields of the source from which `field` cannot be made: those that some of its readers may not read, those that are not
 * stored as they are or that not every write reads, and, for a fan-out, those that change with other entities and not with a write of the source.
 */
function hiddenFields({ source, target, fanOut }: Denormalized, field: string): string[] {
  return [
    ...fieldsHiddenFrom(rolesToSee(target(), field), source),
    ...apartFields(source),
    ...Object.keys(source.attachments),
    ...referenceFields(source),
    ...(fanOut ? keptFields(source) : []),
  ];
}

/** Yields an error for each copy that shows a source to roles that may not read it. */
export function* copyErrors({ source, target, copies }: Denormalized): Generator<string> {
  for (const field of Object.keys(copies))
    yield* unreadableErrors(`"${field}" is copied from "${source.name}"`, { entity: target(), field, from: source });
}
