import { createClient } from 'rowkey/client';
import { openSession } from 'rowkey/sign-in';
import type { model } from '../model.ts';

/** For Azure, `azd` and the workflow set this. The default is the API of `npm start`. Either says where its users sign in. */
const { VITE_API: url = 'http://127.0.0.1:7071/api' } = import.meta.env;

export const session = await openSession({ url });
export const client = createClient<typeof model>({ url, token: session.isSignedIn ? session.token : undefined });
export type Project = Awaited<ReturnType<typeof client.projects.create>>['values'];

/** The code of the report that a customer has opened. */
export const reportCode = new URLSearchParams(location.search).get('report');
export const linkToReport = (code: string) => `${location.origin}${location.pathname}?report=${code}`;

/** The day of this device: the one in UTC may be another. */
export const today = () => new Date().toLocaleDateString('sv');
export const formatHours = (hours: number) => `${hours.toLocaleString(undefined, { maximumFractionDigits: 2 })} h`;
export const formatDay = (day: string) =>
  new Date(`${day}T00:00`).toLocaleDateString(undefined, { weekday: 'short', day: 'numeric', month: 'short' });

/** Whatever its ETag: each entry that is added changes the ETag of its project, so that the project is not deleted at the same time. */
export const deleteProject = ({ ownerId, projectId }: Project) =>
  client.projects.delete({ ownerId, projectId }, { ifMatch: '*' });

/** Deletes all rows of the user. The account itself is the identity provider's. */
export async function deleteOwnData(): Promise<void> {
  if ((await client.eraseOwnData()).failed > 0) throw new Error('Some rows were just being changed. Try again.');
  session.signOut();
}
