import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { EntryList, Problem } from './entry-list.tsx';
import { client, deleteOwnData, deleteProject, formatHours, linkToReport, type Project, today } from './session.ts';

/** A write. Afterwards everything that is shown is read again, for which the write does not wait. */
function useWrite<Input>(write: (input: Input) => Promise<unknown>) {
  const queries = useQueryClient();
  return useMutation({ mutationFn: write, onSuccess: () => void queries.invalidateQueries() });
}

/** Calls `send` with the fields of the form when it is submitted, and empties the form afterwards. */
const onSubmit =
  (send: (fields: Record<string, string>) => Promise<unknown>) => async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const fields = [...new FormData(form)].map(([name, value]) => [name, String(value)]);
    // The mutation has the error of a write that failed.
    await send(Object.fromEntries(fields)).then(
      () => form.reset(),
      () => undefined,
    );
  };

async function readProjects() {
  const { subject } = await client.me();
  const [projects, totals] = await Promise.all([
    Array.fromAsync(client.projects.by.name.range({ ownerId: subject })),
    Array.fromAsync(client.entries.totals.byProject.range({ ownerId: subject })),
  ]);
  const hours = new Map(totals.map(({ group, sum }) => [group.projectId, sum.hours]));
  return projects.map((project) => ({ project, hours: hours.get(project.projectId) ?? 0 }));
}

export function Projects() {
  const [opened, open] = useState<string>();
  const projects = useQuery({ queryKey: ['projects'], queryFn: readProjects });
  const create = useWrite(async (name: string) => open((await client.projects.create({ name })).values.projectId));
  const erase = useMutation({ mutationFn: deleteOwnData });
  return (
    <>
      <h1>Projects</h1>
      <Problem error={projects.error ?? create.error ?? erase.error} />
      <form onSubmit={onSubmit(({ name = '' }) => create.mutateAsync(name))}>
        <input name="name" placeholder="New project" aria-label="Name of the project" maxLength={80} required />
        <button type="submit">Create</button>
      </form>
      {projects.data?.map(({ project, hours }) => (
        <details
          key={project.projectId}
          className="card"
          open={opened === project.projectId}
          onToggle={({ currentTarget }) =>
            open((before) =>
              currentTarget.open ? project.projectId : before === project.projectId ? undefined : before,
            )
          }
        >
          <summary>
            <span className="name">{project.name}</span>
            <span className="hours">{formatHours(hours)}</span>
          </summary>
          {opened === project.projectId && <OpenProject project={project} />}
        </details>
      ))}
      <footer>
        <button type="button" onClick={() => confirm('Delete everything that is yours?') && erase.mutate()}>
          Delete my data
        </button>
      </footer>
    </>
  );
}

function OpenProject({ project }: { project: Project }) {
  const { ownerId, projectId, code } = project;
  const entries = useQuery({
    queryKey: ['entries', projectId],
    queryFn: () => Array.fromAsync(client.entries.range({ ownerId }, { from: projectId, to: projectId })),
  });
  const add = useWrite(client.entries.create);
  const remove = useWrite(client.entries.delete);
  const removeProject = useWrite(deleteProject);
  return (
    <>
      <form
        className="add"
        onSubmit={onSubmit(({ day = '', hours, note }) =>
          add.mutateAsync({ projectId, day, hours: Number(hours), ...(note && { note }) }),
        )}
      >
        <input name="day" type="date" aria-label="Day" defaultValue={today()} required />
        <input
          name="hours"
          type="number"
          min="0.25"
          max="24"
          step="0.25"
          placeholder="Hours"
          aria-label="Hours"
          required
        />
        <input name="note" placeholder="Note" aria-label="Note" maxLength={200} />
        <button type="submit">Add</button>
      </form>
      <Problem error={entries.error ?? add.error ?? remove.error ?? removeProject.error} />
      <EntryList
        entries={entries.data ?? []}
        action={(entry) => (
          <button type="button" aria-label="Delete the entry" onClick={() => remove.mutate(entry)}>
            ×
          </button>
        )}
      />
      <div className="actions">
        <a href={linkToReport(code)}>Report for the customer</a>
        <button type="button" onClick={() => removeProject.mutate(project)}>
          Delete project
        </button>
      </div>
    </>
  );
}
