//! Operators of OpenVINO.

mod gather;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[gather::GATHER];
