import mirab from './index.js';

export const { Decision, Limit, Limiter, ManualClock, MirabError } = mirab;
