/** True if the tests run the app under Azure Functions Core Tools instead of the host of this project. */
export const UNDER_FUNC = process.env.ROWKEY_HOST === 'func';
