interface Tab {
  readonly id: string;
  readonly title: string;
  readonly address: string;
}

/** Links, because each tab has an address. */
export function Tabs(props: {
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly current: string | undefined;
}) {
  const { label, tabs, current } = props;
  if (tabs.length < 2) return null;
  return (
    <nav class="tabs" aria-label={label}>
      <ul>
        {tabs.map(({ id, title, address }) => (
          <li key={id}>
            <a href={address} aria-current={id === current ? 'page' : undefined}>
              {title}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}
