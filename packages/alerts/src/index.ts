export { type AlertRule, DEPLOYMENT_RULES } from './deployment-rules.ts';
