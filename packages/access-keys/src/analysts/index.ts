export {
  ALL_ENVIRONMENTS,
  type AnalystAccount,
  type AnalystCredentials,
  assertCluster,
  createRunStatement,
  dropAnalyst,
  findGrantRefusal,
  isAnalystFromUsersXml,
  listAnalysts,
  type RunStatement,
  setGrant,
  WrongCluster,
} from './accounts.ts';
export * from './assign.ts';
export * from './credentials.ts';
