import './operators.css';

export { AccountsPage } from './accounts-page.tsx';
export { AuditPage } from './audit-page.tsx';
export { BackupPage } from './backup-page.tsx';
export { CheckPage } from './check-page.tsx';
export { ChecksPage } from './checks-page.tsx';
export { FailedMessagesPage } from './failed-messages-page.tsx';
export { GrantsPage } from './grants-page.tsx';
export { HeatPage } from './heat-page.tsx';
export { IndexesPage } from './indexes-page.tsx';
export { ModelPage } from './model-page.tsx';
export { PeriodsPage } from './periods-page.tsx';
export { QueuesPage } from './queues-page.tsx';
export { UsagePage } from './usage-page.tsx';
export { UsersPage } from './users-page.tsx';
