/** Whether products of the tests run under Azure Functions Core Tools, and not under the project's own host. */
export const UNDER_FUNC = process.env.ROWKEY_HOST === 'func';
