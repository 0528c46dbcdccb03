//! The order `p` of the norms that LpPool and GlobalLpPool compute.

use crate::ops::prelude::*;

#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    One,
    Two,
    Other(f64),
}

impl Order {
    /// In version 1 it was a float. The text doesn't restrict it, but 0 and less give no norm.
    pub(super) fn load(node: &Node<'_>) -> Result<Order> {
        let order = if node.version() == 1 { node.float("p")?.into() } else { node.int("p")? as f64 };
        match order {
            1.0 => Ok(Order::One),
            2.0 => Ok(Order::Two),
            _ if order > 0.0 && order.is_finite() => Ok(Order::Other(order)),
            _ => Err(Error::model(format!("p is {order}: it must be a number greater than 0")).attribute("p")),
        }
    }
}
