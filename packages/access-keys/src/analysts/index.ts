export {
  ALL_ENVIRONMENTS,
  type AnalystAccount,
  type AnalystCredentials,
  createRunStatement,
  dropAnalyst,
  findGrantRefusal,
  isAnalystFromUsersXml,
  listAnalysts,
  type RunStatement,
  setGrant,
} from './accounts.ts';
export * from './assign.ts';
export * from './credentials.ts';
