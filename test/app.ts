import { deployedApp, type LocalApp } from '../local/instance/deployed-app.ts';

/** The app that the tests run under the functions host. */
export const testApp: LocalApp = deployedApp;
