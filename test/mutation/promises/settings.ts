import type { Cut } from '../../model/rules.ts';

/** Files that tests read and do not import: the template, the settings of the host, and those of the repository. */

const CONVENTIONS = 'test/infra/conventions.test.ts';
const PARAMETERS = 'test/infra/parameters.test.ts';
const HOST = [
  'test/local/host/host-settings.test.ts',
  'the app receives messages in batches and asks an idle queue at least every second',
] as const;

export const SETTINGS: readonly Cut[] = [
  {
    without: 'All accounts have one redundancy',
    recommendations: ['d-operations'],
    file: 'infra/main.bicep',
    edits: [
      [
        'var skus = map(managements, one => one.?storageSku ?? storageSku)',
        'var skus = map(managements, one => storageSku)',
      ],
    ],
    test: [PARAMETERS, 'gives an account its own values, and the others those of all'],
    finds: "to deeply equal [ 'Standard_ZRS', …(2) ]",
  },
  {
    without: 'An alert of an account goes to the addresses of all only',
    recommendations: ['d-separate-management'],
    file: 'infra/main.bicep',
    edits: [['    accountEmails: accountReceivers\n', '    accountEmails: map(accountReceivers, one => [])\n']],
    test: [CONVENTIONS, 'give an alert of an account to its own addresses as well'],
    finds: "to be 'accountReceivers'",
  },
  {
    without: 'Production has its copies in one data center',
    recommendations: ['d-replicate-partitions'],
    file: 'infra/prod.bicepparam',
    edits: [["param storageSku = 'Standard_ZRS'", "param storageSku = 'Standard_LRS'"]],
    test: [CONVENTIONS, 'prod keeps copies in three zones of one region'],
    finds: `Received: "'Standard_LRS'"`,
  },
  {
    without: 'A further account lacks the tables of the model',
    recommendations: ['d-shard-schema'],
    file: 'infra/main.bicep',
    edits: [
      ['      sku: skus[index + 1]\n      model: model\n', '      sku: skus[index + 1]\n      model: { tables: [] }\n'],
    ],
    test: [CONVENTIONS, 'are like the first, but for their names'],
    finds: '{ tables: [] }',
  },
  {
    without: 'A storage account is in another region than the app',
    recommendations: ['c-location'],
    file: 'infra/main.bicep',
    edits: [
      [
        '    location: location\n    tags: tags\n    sku: skus[0]\n',
        "    location: 'westeurope'\n    tags: tags\n    sku: skus[0]\n",
      ],
    ],
    test: [CONVENTIONS, 'every resource is in the region of the deployment'],
    finds: "expected [ 'storage' ] to deeply equal []",
  },
  {
    without: 'A web page may not write to tables',
    recommendations: ['c-cors'],
    file: 'infra/modules/storage.bicep',
    edits: [["['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'MERGE', 'DELETE', 'OPTIONS']", "['GET', 'HEAD', 'OPTIONS']"]],
    test: ['test/infra/cors.test.ts', '%s equals the rule of the emulator, for the given origins only'],
    finds: '"allowedMethods": "GET,HEAD,OPTIONS"',
  },
  {
    without: 'The name of an account begins with its environment',
    recommendations: ['c-account-hash'],
    file: 'infra/main.bicep',
    edits: [["empty(firstStorageAccountName) ? '", "empty(firstStorageAccountName) ? 'rowkey"]],
    test: [PARAMETERS, 'gives each account a name that begins with a hash'],
    finds: 'to match / ',
  },
  {
    without: 'A content delivery network keeps nothing',
    recommendations: ['c-blob-cdn'],
    file: 'infra/modules/cdn.bicep',
    edits: [["    cacheConfiguration: {\n      queryStringCachingBehavior: 'UseQueryString'\n    }\n", '']],
    test: [CONVENTIONS, 'a content delivery network is an option, and keeps public files only, by their whole URL'],
    finds: "expected [] to deeply equal [ 'publicPaths' ]",
  },
  {
    without: 'The app receives one message at a time',
    recommendations: ['c-queue-batch'],
    file: 'host.json',
    edits: [['"batchSize": 16', '"batchSize": 1']],
    test: HOST,
    finds: 'expected 1 to be greater than or equal to 16',
  },
  {
    without: 'An idle queue is asked once a minute',
    recommendations: ['c-queue-polling'],
    file: 'host.json',
    edits: [['"maxPollingInterval": "00:00:01"', '"maxPollingInterval": "00:01:00"']],
    test: HOST,
    finds: 'expected 60000 to be less than or equal to 1000',
  },
  {
    without: 'Nobody proposes new versions of the client libraries',
    recommendations: ['c-libraries'],
    file: '.github/dependabot.yml',
    edits: [['  - package-ecosystem: npm\n    directory: /\n', '  - package-ecosystem: docker\n    directory: /\n']],
    test: ['test/local/npmrc.test.ts', 'Dependabot proposes new versions of all packages every week'],
    finds: '+   "directory": "/site"',
  },
];
