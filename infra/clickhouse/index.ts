export { applySql, type SqlFolders, type SqlTarget } from './apply.ts';
