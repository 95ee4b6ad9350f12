export { applySql, EditedFileError, type SqlTarget } from './apply.ts';
