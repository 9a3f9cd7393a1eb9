import type { KnipConfig } from 'knip';

/** What knip cannot see from imports and scripts. Without a reason here, an unused file, export or dependency is deleted. */
export default {
  workspaces: {
    '.': {
      entry: [
        // Readers copy the examples. In one pattern, which also matches something where the examples are deleted.
        '{examples,functions}/**/*.ts',
        // The entries of the package.
        'lib/{index,client/index,client/sign-in,testing/index}.ts',
        'local/commands/*.ts',
        // The initializer, and what it copies into an app.
        'local/create/create-rowkey.ts',
        'local/create/template/**/*.{ts,tsx}',
        'web/{vite.config.ts,src/main.tsx}',
        // Commands, tests and other processes load them by path.
        'local/instance/{end-with-parent,inspect-app-process}.ts',
        'local/package/{app,compile-bundle}.ts',
        'test/bench/*.ts',
        'test/clients/app/functions.ts',
        'test/existing/data.ts',
        'test/fixture/*.ts',
        'test/{doors/functions,fixtures/functions*,cut-setup,lib/examples/app,memory-setup,simulation/leave-out}.ts',
        'test/{everything,looking-back}/*functions.ts',
        'test/mutation/{coverage-setup,sample,vitest.config}.ts',
        // Tests of the examples use them.
        'test/rules/{aimed-attacks,declared-rules,marked-world}.ts',
      ],
      project: ['{functions,lib,local,model,examples,test}/**/*.ts', '{local/create,web}/**/*.{ts,tsx}'],
    },
  },
  // Projects of their own, which the tests compile.
  ignore: ['test/adopter/**', 'test/clients/programs/**', 'test/misnamed/**'],
  ignoreIssues: {
    // Its parts become one folder. The compiler resolves the imports between them.
    'local/create/template/**': ['unresolved'],
    // Declaration files name its page.
    'lib/features/lookup/lookup.ts': ['types'],
    // The library @azure/functions and processes of tests get all exports of these modules at run time.
    'local/host/{functions-core,log}.ts': ['exports'],
    'test/memory-server.ts': ['exports'],
    // One of two names for the same number, which says what the number is there.
    'test/simulation/event.ts': ['duplicates'],
  },
  ignoreDependencies: [
    // Resolved by name at run time, or started as a process.
    'rowkey-generators',
    '@cedar-policy/cedar-wasm',
    '@kusto/language-service-next',
    '@oazapfts/runtime',
    '@stryker-mutator/vitest-runner',
    'axe-core',
    'azurite',
    'oazapfts',
    // Commands of a release and of CI.
    '@arethetypeswrong/cli',
    'publint',
  ],
  // Tools of Azure, which few need, and the command of a terminal test, which is skipped without it.
  ignoreBinaries: ['azd', 'func', 'script'],
} satisfies KnipConfig;
