import { useQuery } from '@tanstack/react-query';
import { EntryList, Problem } from './entry-list.tsx';
import { client, formatHours } from './session.ts';

/** What a customer sees, without an account. */
export function Report({ code }: { code: string }) {
  const { data, error } = useQuery({
    queryKey: ['report', code],
    queryFn: ({ signal }) => client.operations.report({ code }, { signal }),
  });
  if (!data) return <Problem error={error} />;
  return (
    <>
      <h1>{data.name}</h1>
      <p>{formatHours(data.hours)} in total</p>
      <EntryList entries={[...data.entries]} />
    </>
  );
}
