import './style.css';
import {
  client,
  deleteOwnData,
  deleteProject,
  formatDay,
  formatHours,
  linkToReport,
  type Project,
  reportCode,
  session,
  today,
} from './session.ts';

function find<Found extends HTMLElement = HTMLElement>(selector: string, within: ParentNode = document): Found {
  const found = within.querySelector<Found>(selector);
  if (!found) throw new Error(`The page has no ${selector}.`);
  return found;
}

function copyOf(template: string): HTMLElement {
  return find<HTMLTemplateElement>(template).content.firstElementChild?.cloneNode(true) as HTMLElement;
}

/** Does something, and shows why it failed. */
async function run(act: () => Promise<unknown>): Promise<void> {
  const problem = find('#problem');
  problem.textContent = '';
  await act().catch((error: Error) => {
    problem.textContent = error.message;
  });
}

/** When the form is submitted, calls `write` with its fields, empties it, and shows what has changed. */
function onSubmit(
  form: HTMLFormElement,
  write: (fields: Record<string, string>) => Promise<unknown>,
  show: () => Promise<unknown>,
): void {
  form.onsubmit = (event) => {
    event.preventDefault();
    const fields = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]));
    run(async () => {
      await write(fields);
      form.reset();
      await show();
    });
  };
}

function entryRow({ day, note, hours }: { day: string; note?: string | undefined; hours: number }): HTMLElement {
  const row = copyOf('#entry');
  find('.day', row).textContent = formatDay(day);
  find('.note', row).textContent = note ?? '';
  find('.hours', row).textContent = formatHours(hours);
  return row;
}

/** The project that is unfolded. */
let opened: string | undefined;

async function showHours(ownerId: string): Promise<void> {
  const totals = await Array.fromAsync(client.entries.totals.byProject.range({ ownerId }));
  const hours = new Map(totals.map(({ group, sum }) => [group.projectId, sum.hours]));
  for (const card of document.querySelectorAll<HTMLElement>('.card'))
    find('.hours', card).textContent = formatHours(hours.get(card.dataset.id ?? '') ?? 0);
}

async function showEntries(card: HTMLElement, { ownerId, projectId }: Project): Promise<void> {
  const entries = await Array.fromAsync(client.entries.range({ ownerId }, { from: projectId, to: projectId }));
  const rows = entries.map((entry) => {
    const row = entryRow(entry);
    const button = Object.assign(document.createElement('button'), { type: 'button', textContent: '×' });
    button.ariaLabel = 'Delete the entry';
    button.onclick = () =>
      run(async () => {
        await client.entries.delete(entry);
        row.remove();
        await showHours(ownerId);
      });
    row.append(button);
    return row;
  });
  find('.entries', card).replaceChildren(...rows);
}

function projectCard(project: Project): HTMLElement {
  const { ownerId, projectId, name, code } = project;
  const card = copyOf('#project') as HTMLDetailsElement;
  card.dataset.id = projectId;
  find('.name', card).textContent = name;
  find<HTMLAnchorElement>('a', card).href = linkToReport(code);
  find<HTMLInputElement>('[name=day]', card).defaultValue = today();
  onSubmit(
    find<HTMLFormElement>('form', card),
    ({ day = '', hours, note }) =>
      client.entries.create({ projectId, day, hours: Number(hours), ...(note && { note }) }),
    () => Promise.all([showEntries(card, project), showHours(ownerId)]),
  );
  find('.actions button', card).onclick = () => run(() => deleteProject(project).then(showProjects));
  card.open = projectId === opened;
  card.ontoggle = () => {
    if (card.open) {
      opened = projectId;
      run(() => showEntries(card, project));
    } else if (opened === projectId) opened = undefined;
  };
  return card;
}

async function showProjects(): Promise<void> {
  const { subject: ownerId } = await client.me();
  const projects = await Array.fromAsync(client.projects.by.name.range({ ownerId }));
  find('#projects').replaceChildren(...projects.map(projectCard));
  await showHours(ownerId);
}

async function showReport(code: string): Promise<void> {
  const { name, hours, entries } = await client.operations.report({ code });
  const report = find('#report');
  report.hidden = false;
  find('h1', report).textContent = name;
  find('p', report).textContent = `${formatHours(hours)} in total`;
  find('.entries', report).replaceChildren(...entries.map(entryRow));
}

const sign = find('#sign');
sign.textContent = session.isSignedIn ? 'Sign out' : 'Sign in';
sign.onclick = session.isSignedIn ? session.signOut : session.signIn;
const code = reportCode;
if (code) run(() => showReport(code));
else {
  sign.hidden = false;
  find(session.isSignedIn ? '#own' : '#welcome').hidden = false;
  find('#erase').onclick = () => confirm('Delete everything that is yours?') && run(deleteOwnData);
  const create = async (name = '') => {
    opened = (await client.projects.create({ name })).values.projectId;
  };
  onSubmit(find<HTMLFormElement>('#create'), ({ name }) => create(name), showProjects);
  if (session.isSignedIn) run(showProjects);
}
