export { openActivityStore } from './activity-store.ts';
export { openChainStore } from './chain-store.ts';
